"""watchdog on the directory of the file (default); with its polling observer (best)."""

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

from show import configuration, directory, show


class Handler(FileSystemEventHandler):
    def on_any_event(self, event):
        show()


observer = PollingObserver(timeout=0.2) if configuration == "best" else Observer()
observer.schedule(Handler(), directory)
observer.start()
show()
observer.join()
