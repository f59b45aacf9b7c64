# inotifywait on the file (default), or on its directory (best). https://man7.org/linux/man-pages/man1/inotifywait.1.html
configuration=$1 path=$2
watched=$path
[ "$configuration" = best ] && watched=$(dirname "$path")
show() { [ -r "$path" ] && sha256sum < "$path" | cut -d' ' -f1; }

inotifywait --quiet --monitor --event close_write,moved_to,create,delete "$watched" | {
  show
  while read -r _; do show; done
}
