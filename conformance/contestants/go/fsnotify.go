package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watchFsnotify watches the file (default), or its directory, as the README of fsnotify advises (best).
func watchFsnotify(path string, isBest bool) {
	watched := path
	if isBest {
		watched = filepath.Dir(path)
	}
	follow(watched, func(fsnotify.Event) { show(path) })
	show(path)
}

// watchData follows the rule of configmap-reload: an event for `..data` in the directory, created or written.
func watchData(path string, _ bool) {
	follow(filepath.Dir(path), func(event fsnotify.Event) {
		if filepath.Base(event.Name) == "..data" && event.Has(fsnotify.Create|fsnotify.Write) {
			show(path)
		}
	})
	show(path)
}

func follow(watched string, onEvent func(fsnotify.Event)) {
	watcher, err := fsnotify.NewWatcher()
	check(err)
	check(watcher.Add(watched))
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
