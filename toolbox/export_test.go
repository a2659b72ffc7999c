package toolbox

var (
	SplitName    = splitName
	ServerPartIs = serverPartIs
	ToolPartIs   = toolPartIs
)
