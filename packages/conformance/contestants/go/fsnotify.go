package main

import "github.com/fsnotify/fsnotify"

// watchFsnotify watches the file (default), or its directory, as the README of fsnotify advises (best).
// https://github.com/fsnotify/fsnotify#watching-a-file-doesnt-work-well
func watchFsnotify(isBest bool) {
	if isBest {
		follow(directories(), func(fsnotify.Event) { show(paths...) })
	} else {
		follow(paths, func(event fsnotify.Event) { show(event.Name) })
	}
	show(paths...)
}
