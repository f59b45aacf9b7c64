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
		watchWithKoanf(path, isBest)
	}
}

func watchWithKoanf(path string, isBest bool) {
	onEvent := func(err error) {
		if err == nil {
			show(path)
			return
		}
		fmt.Fprintln(os.Stderr, err)
		if isBest {
			time.AfterFunc(time.Second, func() { watchWithKoanf(path, isBest) })
		}
	}
	onEvent(file.Provider(path).Watch(func(_ any, err error) { onEvent(err) }))
}
