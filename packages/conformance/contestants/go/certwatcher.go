package main

import (
	"context"
	"crypto/tls"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// watchCertificate polls each 10 s (default) or each second (best) beside its events. The file is key and certificate.
// https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/certwatcher
func watchCertificate(isBest bool) {
	for _, path := range paths {
		watcher, err := certwatcher.New(path, path)
		check(err)
		if isBest {
			watcher = watcher.WithWatchInterval(time.Second)
		}
		watcher.RegisterCallback(func(tls.Certificate) { show(path) })
		go func() { check(watcher.Start(context.Background())) }()
	}
}
