package container_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/container"
)

func TestCommandLinesThatRunAContainerAreRecognised(t *testing.T) {
	for line, name := range map[string]string{
		"docker run -i --rm image":                                       "",
		"/usr/local/bin/docker run -i image":                             "",
		`C:\Docker\docker.exe run -i image`:                              "",
		"podman run --name mine -i image":                                "mine",
		"nerdctl --namespace x run --name=mine image":                    "mine",
		"sudo -n docker run -i image":                                    "",
		"sudo -u podman docker run -i image":                             "",
		"env DOCKER_HOST=unix:///x docker --debug run -i image":          "",
		"docker container run -i image":                                  "",
		"docker --context far container run --name=mine image":           "mine",
		"docker run -it --env A=b -v /a:/b --name x --rm image --name y": "x",
		"docker run -i image --name y":                                   "",
		"docker run -ie A=b --name x image":                              "x",
		"docker run -e A -p1:1 --init --name x image":                    "x",
		"mydocker run --name x image":                                    "x",
		"limactl shell docker run image":                                 "none",
		"docker compose run service":                                     "none",
		"docker exec -i run srv":                                         "none",
		"npx docker run":                                                 "none",
		"sudo npx docker run":                                            "none",
		"docker":                                                         "none",
		"docker run":                                                     "",
		"docker mcp gateway run":                                         "none",
	} {
		run, ok := container.Parse(strings.Fields(line), []string{"mydocker"})
		require.Equal(t, name != "none", ok, line)
		if ok {
			require.Equal(t, name, run.Name, line)
		}
	}
	_, ok := container.Parse(nil, nil)
	require.False(t, ok)
}
