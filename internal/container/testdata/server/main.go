// Server is the program of the image that the tests run.
package main

import "github.com/mcppool/mcppool/mcppooltest"

func main() { mcppooltest.Serve() }
