package main

import (
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watchData follows the rule of configmap-reload: an event for `..data` in the directory, created or written.
// https://github.com/jimmidyson/configmap-reload
func watchData(bool) {
	follow(directories(), func(event fsnotify.Event) {
		if filepath.Base(event.Name) == "..data" && event.Has(fsnotify.Create|fsnotify.Write) {
			show(paths...)
		}
	})
	show(paths...)
}
