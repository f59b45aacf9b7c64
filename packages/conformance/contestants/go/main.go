// Watchers for Go: conformance LIBRARY CONFIGURATION PATH...
package main

import (
	"fmt"
	"os"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	library, isBest := os.Args[1], os.Args[2] == "best"
	paths = os.Args[3:]
	adapters := map[string]func(isBest bool){
		"fsnotify":         watchFsnotify,
		"viper":            watchViper,
		"koanf":            watchKoanf,
		"certwatcher":      watchCertificate,
		"configmap-reload": watchData,
		"corrected":        func(bool) { watchCorrected() },
	}
	adapters[library](isBest)
	select {}
}
