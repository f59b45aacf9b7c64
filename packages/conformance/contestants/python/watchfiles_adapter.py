"""watchfiles on the file (default); on its directory, polling (best).

https://watchfiles.helpmanual.io/api/watch/
"""

from threading import Timer

from watchfiles import watch

from show import configuration, directories, paths, show

# `watch` blocks and says nothing when it has begun.
Timer(0.3, show).start()
if configuration == "best":
    changes = watch(*directories, force_polling=True, poll_delay_ms=200, debounce=200, step=50, recursive=False)
else:
    changes = watch(*paths)
for _ in changes:
    show()
