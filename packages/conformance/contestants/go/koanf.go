package main

import (
	"fmt"
	"os"
	"time"

	"github.com/knadh/koanf/providers/file"
)

// watchKoanf watches once (default), or begins again a second after an error, with a new provider (best).
// https://github.com/knadh/koanf#watching-file-for-changes
func watchKoanf(isBest bool) {
	for _, path := range paths {
		var watch func()
		onEvent := func(_ any, err error) {
			if err == nil {
				show(path)
				return
			}
			fmt.Fprintln(os.Stderr, err)
			if isBest {
				time.AfterFunc(time.Second, watch)
			}
		}
		watch = func() { onEvent(nil, file.Provider(path).Watch(onEvent)) }
		watch()
	}
}
