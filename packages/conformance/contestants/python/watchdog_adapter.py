"""watchdog on the directory of the file (default); with its polling observer (best).

https://python-watchdog.readthedocs.io/en/stable/quickstart.html
"""

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

from show import configuration, directories, show


class Handler(FileSystemEventHandler):
    def on_any_event(self, event):
        # What the program itself does by reading.
        if event.event_type not in ("opened", "closed_no_write"):
            show()


observer = PollingObserver(timeout=0.2) if configuration == "best" else Observer()
for directory in directories:
    observer.schedule(Handler(), directory)
observer.start()
show()
observer.join()
