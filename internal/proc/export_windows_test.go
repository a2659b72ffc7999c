package proc

var HasConsole = hasConsole
