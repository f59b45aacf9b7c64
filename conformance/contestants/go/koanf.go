package main

import (
	"fmt"
	"os"
	"time"

	"github.com/knadh/koanf/providers/file"
)

// watchKoanf watches once (default), or begins again a second after an error, with a new provider (best).
func watchKoanf(path string, isBest bool) {
	provider := file.Provider(path)
	err := provider.Watch(func(_ any, err error) {
		if err == nil {
			show(path)
			return
		}
		fmt.Fprintln(os.Stderr, err)
		if isBest {
			time.AfterFunc(time.Second, func() { watchKoanf(path, isBest) })
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if isBest {
			time.AfterFunc(time.Second, func() { watchKoanf(path, isBest) })
		}
	}
	show(path)
}
