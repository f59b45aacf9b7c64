package main

import (
	"github.com/fsnotify/fsnotify"
	"github.com/spf13/viper"
)

// watchViper has nothing to configure. The files are not in a format that viper reads, so that they are read here.
func watchViper(path string, _ bool) {
	viper.SetConfigFile(path)
	viper.SetConfigType("properties")
	viper.OnConfigChange(func(fsnotify.Event) { show(path) })
	viper.WatchConfig()
	show(path)
}
