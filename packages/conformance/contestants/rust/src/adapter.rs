//! notify on the file (default), or its polling watcher on the directory (best); notify-debouncer-full with 2 s on the
//! file, as in its example, or with 100 ms on the directory. https://docs.rs/notify https://docs.rs/notify-debouncer-full
use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode::NonRecursive, Watcher};
use notify_debouncer_full::new_debouncer;
use std::{any::Any, error::Error, path::Path, path::PathBuf, time::Duration};

type Watched = Result<Box<dyn Any>, Box<dyn Error>>;

pub fn watch(library: &str, is_best: bool, paths: &[PathBuf], on_event: impl Fn() + Send + 'static) -> Watched {
    let targets: Vec<&Path> = paths.iter().map(|path| if is_best { path.parent().unwrap() } else { path }).collect();
    // An event of kind `Access` is what the program itself has done by reading.
    if library == "debouncer" {
        let handler = move |result: notify_debouncer_full::DebounceEventResult| match result {
            Ok(events) if events.iter().all(|event| event.kind.is_access()) => {}
            _ => on_event(),
        };
        let mut debouncer = new_debouncer(Duration::from_millis(if is_best { 100 } else { 2_000 }), None, handler)?;
        targets.iter().try_for_each(|target| debouncer.watch(target, NonRecursive))?;
        return Ok(Box::new(debouncer));
    }
    let handler = move |result: notify::Result<notify::Event>| match result {
        Ok(event) if event.kind.is_access() => {}
        _ => on_event(),
    };
    let config = Config::default().with_poll_interval(Duration::from_millis(200)).with_compare_contents(true);
    let mut watcher: Box<dyn Watcher> =
        if is_best { Box::new(PollWatcher::new(handler, config)?) } else { Box::new(RecommendedWatcher::new(handler, config)?) };
    targets.iter().try_for_each(|target| watcher.watch(target, NonRecursive))?;
    Ok(Box::new(watcher))
}
