package mcppoolprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	selector = regexp.MustCompile(`(mcppool_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(?:=|!=|=~|!~)"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

// known are the metrics of testdata/metrics.txt, which another test holds to the code,
// each with the values of its labels.
func known(t *testing.T) map[string]map[string][]string {
	t.Helper()
	page, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	all := make(map[string]map[string][]string)
	for line := range strings.Lines(string(page)) {
		m := selector.FindStringSubmatch(line)
		if strings.HasPrefix(line, "#") || m == nil {
			continue
		}
		if all[m[1]] == nil {
			all[m[1]] = map[string][]string{"job": nil, "instance": nil} // which Prometheus adds
		}
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			all[m[1]][label[1]] = append(all[m[1]][label[1]], label[2])
		}
	}
	return all
}

// expressions returns those of the dashboard, and those of the alerts.
func expressions(t *testing.T) (panels, alerts []string) {
	t.Helper()
	raw, err := os.ReadFile("dashboards/grafana.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(raw, &board))
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			panels = append(panels, target.Expr)
		}
	}
	rules, err := os.ReadFile("dashboards/alerts.yml")
	require.NoError(t, err)
	for _, rule := range strings.Split(string(rules), "- alert: ")[1:] {
		_, expr, found := strings.Cut(rule, "expr: ")
		require.True(t, found, rule)
		expr, _, found = strings.Cut(expr, "labels: ")
		require.True(t, found, rule)
		alerts = append(alerts, expr)
	}
	return panels, alerts
}

// fixed are labels whose values are all in the documentation.
var fixed = []string{"outcome", "state", "reason", "what"}

func TestDashboardAndAlertsAskForMetricsLabelsAndValuesThatExist(t *testing.T) {
	metrics := known(t)
	panels, alerts := expressions(t)
	require.NotEmpty(t, panels)
	require.NotEmpty(t, alerts)
	documented, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, expr := range slices.Concat(panels, alerts) {
		asked := selector.FindAllStringSubmatch(expr, -1)
		require.NotEmpty(t, asked, expr)
		for _, by := range grouping.FindAllStringSubmatchIndex(expr, -1) {
			of := selector.FindStringSubmatch(expr[by[1]:]) // what it groups comes behind it
			require.NotNil(t, of, expr)
			for name := range strings.SplitSeq(expr[by[2]:by[3]], ", ") {
				if name != "le" || !strings.HasSuffix(of[1], "_bucket") {
					require.Contains(t, metrics[of[1]], name, "%s: %s has no such label", expr, of[1])
				}
			}
		}
		for _, m := range asked {
			labels := metrics[m[1]]
			require.NotNil(t, labels, "%s: there is no metric %s", expr, m[1])
			for _, match := range matcher.FindAllStringSubmatch(m[2], -1) {
				require.Contains(t, labels, match[1], "%s: %s has no such label", expr, m[1])
				if !slices.Contains(fixed, match[1]) {
					continue
				}
				for value := range strings.SplitSeq(match[2], "|") {
					require.True(t, slices.Contains(labels[match[1]], value) || strings.Contains(string(documented), "`"+value+"`"),
						"%s: %s is no value of %s", expr, value, match[1])
				}
			}
		}
	}
}

func TestDashboardShowsEveryMetric(t *testing.T) {
	panels, _ := expressions(t)
	all := strings.Join(panels, "\n")
	for name := range known(t) {
		name = regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
		require.Contains(t, all, name)
	}
}
