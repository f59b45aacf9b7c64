// Watchers for Go: conformance LIBRARY CONFIGURATION PATH
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
)

var (
	mutex sync.Mutex
	shown string
)

// show prints the SHA-256 of the file, if it can be read and is another one than before.
func show(path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		return // not there at the moment
	}
	showContent(content)
}

func showContent(content []byte) {
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	mutex.Lock()
	defer mutex.Unlock()
	if digest != shown {
		shown = digest
		fmt.Println(digest)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	library, isBest, path := os.Args[1], os.Args[2] == "best", os.Args[3]
	adapters := map[string]func(path string, isBest bool){
		"fsnotify":         watchFsnotify,
		"viper":            watchViper,
		"koanf":            watchKoanf,
		"certwatcher":      watchCertificate,
		"configmap-reload": watchData,
	}
	adapters[library](path, isBest)
	select {}
}
