package main

import (
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchCorrected does what the failures of the suite say: any event of the directory, a read each second as well, and
// contents that were read twice. Errors do not end it. ../../docs/conformance.md#from-a-first-version-to-a-right-one
func watchCorrected() {
	var events <-chan fsnotify.Event
	if watcher, err := fsnotify.NewWatcher(); err == nil && watcher.Add(directories()[0]) == nil {
		events = watcher.Events
	}
	for shown := ""; ; {
		for first, ok := digestOf(paths[:1]); ok && first != shown; first, ok = digestOf(paths[:1]) {
			time.Sleep(50 * time.Millisecond)
			if again, _ := digestOf(paths[:1]); again == first {
				fmt.Println(first)
				shown = first
			}
		}
		select {
		case <-events:
		case <-time.After(time.Second):
		}
	}
}
