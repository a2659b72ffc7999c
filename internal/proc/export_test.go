package proc

var StopPhases = stopPhases
