//! Watchers for Rust: conformance LIBRARY CONFIGURATION PATH...
mod adapter;
mod corrected;
mod show;

use std::{env, path::PathBuf, sync::mpsc};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().collect();
    let (library, is_best) = (arguments[1].as_str(), arguments[2] == "best");
    let mut shown = show::Shown::new(arguments[3..].iter().map(PathBuf::from).collect());
    if arguments[2] == "corrected" {
        corrected::watch(&shown.paths);
    }
    let (sender, receiver) = mpsc::channel::<()>();
    let on_event = move || {
        sender.send(()).ok();
    };
    // It would stop watching if it were dropped.
    let _watcher = adapter::watch(library, is_best, &shown.paths, on_event)?;
    shown.show();
    while receiver.recv().is_ok() {
        shown.show();
    }
    Ok(())
}
