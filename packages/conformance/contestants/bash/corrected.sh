# inotifywait with what the failures of the suite say: any event of the directory, a read each second as well, and contents
# that were read twice. Errors do not end it. ../../docs/conformance.md#from-a-first-version-to-a-right-one
path=$2
digest() { sha256sum 2> /dev/null < "$path" | cut -d' ' -f1; }

while :; do
  while first=$(digest) && [ -n "$first" ] && [ "$first" != "$shown" ]; do
    sleep 0.05
    [ "$(digest)" = "$first" ] && echo "$first" && shown=$first
  done
  # Ends at an event, or when a second is over. If nothing can be watched, it fails at once.
  inotifywait -qq --timeout 1 "$(dirname "$path")" 2> /dev/null || sleep 0.2
done
