//! notify on the file (default) or on its directory, and with its polling watcher; notify-debouncer-full on the directory.
use std::{env, fs, path::Path, path::PathBuf, sync::mpsc, time::Duration};

use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use notify_debouncer_full::new_debouncer;
use sha2::{Digest, Sha256};

fn show(path: &Path, shown: &mut String) {
    // A file that cannot be read is not there at the moment.
    if let Ok(content) = fs::read(path) {
        let digest: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        if digest != *shown {
            println!("{digest}");
            *shown = digest;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().collect();
    let (library, configuration) = (arguments[1].as_str(), arguments[2].as_str());
    let path = PathBuf::from(&arguments[3]);
    let directory = path.parent().ok_or("no directory")?;
    let (sender, receiver) = mpsc::channel::<()>();
    let mut shown = String::new();

    // Dropped at the end only: it would stop watching.
    let mut watchers: Vec<Box<dyn Watcher>> = Vec::new();
    let mut debouncers = Vec::new();
    if library == "notify" && configuration == "best" {
        let config = Config::default().with_poll_interval(Duration::from_millis(200)).with_compare_contents(true);
        let mut watcher = PollWatcher::new(move |_| { sender.send(()).ok(); }, config)?;
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        watchers.push(Box::new(watcher));
    } else if library == "notify" {
        let mut watcher = RecommendedWatcher::new(move |_| { sender.send(()).ok(); }, Config::default())?;
        watcher.watch(&path, RecursiveMode::NonRecursive)?;
        watchers.push(Box::new(watcher));
    } else {
        let timeout = Duration::from_millis(if configuration == "best" { 100 } else { 2_000 });
        let mut debouncer = new_debouncer(timeout, None, move |_| { sender.send(()).ok(); })?;
        let watched = if configuration == "best" { directory } else { &path };
        debouncer.watch(watched, RecursiveMode::NonRecursive)?;
        debouncers.push(debouncer);
    }
    show(&path, &mut shown);
    while receiver.recv().is_ok() {
        show(&path, &mut shown);
    }
    Ok(())
}
