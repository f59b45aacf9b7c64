package main

import (
	"encoding/json"
	"os"

	"k8s.io/kubernetes/pkg/volume/util"
)

// Writes the files {"key": "content"} of stdin into the directory with kubelet's own code.
func main() {
	writer, err := util.NewAtomicWriter(os.Args[1], "trace")
	if err != nil {
		panic(err)
	}
	var files map[string]string
	if err := json.NewDecoder(os.Stdin).Decode(&files); err != nil {
		panic(err)
	}
	payload := map[string]util.FileProjection{}
	for name, content := range files {
		payload[name] = util.FileProjection{Data: []byte(content), Mode: 0o644}
	}
	if err := writer.Write(payload, nil); err != nil {
		panic(err)
	}
}
