package toolbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox"
)

func TestAFilterAllowsWhatItIncludesAndDoesNotExclude(t *testing.T) {
	for _, c := range []struct {
		filter toolbox.Filter
		tool   string
		want   bool
	}{
		{toolbox.Filter{}, "a", true},
		{toolbox.Filter{Include: []string{}}, "a", false},
		{toolbox.Filter{Include: []string{"a", "b"}}, "b", true},
		{toolbox.Filter{Include: []string{"a", "b"}}, "c", false},
		{toolbox.Filter{Exclude: []string{"a"}}, "a", false},
		{toolbox.Filter{Exclude: []string{"a"}}, "b", true},
		{toolbox.Filter{Include: []string{"a"}, Exclude: []string{"a"}}, "a", false},
		{toolbox.Filter{Include: []string{"*"}, Exclude: []string{"rm_*"}}, "rm_all", false},
		{toolbox.Filter{Include: []string{"get_*"}}, "get_", true},
		{toolbox.Filter{Include: []string{"get_*"}}, "forget_it", false},
		{toolbox.Filter{Include: []string{"*_get_*_by_*"}}, "x_get_y_by_z", true},
		{toolbox.Filter{Include: []string{"*_get_*_by_*"}}, "x_by_y_get_z", false},
		{toolbox.Filter{Include: []string{"a*a"}}, "a", false},
		{toolbox.Filter{Include: []string{"*ab*ab"}}, "abab", true},
		{toolbox.Filter{Include: []string{"*ab*ab"}}, "ab", false},
		{toolbox.Filter{Include: []string{"**"}}, "", true},
		{toolbox.Filter{Include: []string{""}}, "a", false},
	} {
		require.Equal(t, c.want, c.filter.Allows(c.tool), "%+v %s", c.filter, c.tool)
	}
}
