package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// follow calls onEvent for each event of what is watched, and prints the errors.
func follow(watched []string, onEvent func(fsnotify.Event)) {
	watcher, err := fsnotify.NewWatcher()
	check(err)
	for _, path := range watched {
		check(watcher.Add(path))
	}
	go func() {
		for {
			select {
			case event := <-watcher.Events:
				onEvent(event)
			case err := <-watcher.Errors:
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
}

// directories are those of the files, each once.
func directories() (found []string) {
	known := map[string]bool{}
	for _, path := range paths {
		if directory := filepath.Dir(path); !known[directory] {
			known[directory] = true
			found = append(found, directory)
		}
	}
	return found
}
