//go:build !race

package toolbox_test

const raceEnabled = false
