package main

import (
	"github.com/fsnotify/fsnotify"
	"github.com/spf13/viper"
)

// watchViper has nothing to configure. The files are not in a format that viper reads, so that they are read here.
// https://github.com/spf13/viper#watching-and-re-reading-config-files
func watchViper(bool) {
	for _, path := range paths {
		config := viper.New()
		config.SetConfigFile(path)
		config.SetConfigType("properties")
		config.OnConfigChange(func(fsnotify.Event) { show(path) })
		config.WatchConfig()
	}
	show(paths...)
}
