package main

import (
	"errors"
	"flag"
	"os"
	"strings"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

var errNoInput = errors.New("there is no -input for it")

// inputsFrom makes a flag that says which variables have the values for which
// VS Code would ask its user: a secret in an argument could be read by others.
func (o *options) inputsFrom(set *flag.FlagSet) {
	variables := make(map[string]string)
	set.Func("input", "`id=VARIABLE`: the variable with the value for ${input:id}; may be repeated", func(s string) error {
		id, name, ok := strings.Cut(s, "=")
		if !ok || id == "" || name == "" {
			return errors.New("write id=VARIABLE")
		}
		if _, set := os.LookupEnv(name); !set {
			return errors.New("the variable isn't set")
		}
		variables[id] = name
		return nil
	})
	o.reading.Input = func(p mcpservers.Prompt) (string, error) {
		name, given := variables[p.ID]
		switch {
		case given:
			return os.Getenv(name), nil
		case p.Default != "":
			return p.Default, nil
		}
		return "", errNoInput
	}
}
