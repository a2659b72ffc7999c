package mcpservers

// The seams of the tests.
var (
	PlainJSON = plainJSON
	ParseEnv  = parseEnv
)
