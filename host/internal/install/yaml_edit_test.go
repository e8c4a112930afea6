package install_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/toolroom-mcp/toolroom/host/internal/install"
)

func TestSetYAMLField(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"servers:\n  a:\n    command: x\n", "servers:\n  a:\n    command: x\n    sandbox: {\"read\": [\"/r\"]}\n"},
		{"servers:\n  a:\n    command: x", "servers:\n  a:\n    command: x\n    sandbox: {\"read\": [\"/r\"]}\n"},
		{"servers:\n  a:\n    sandbox: default # old\n    command: x\n", "servers:\n  a:\n    sandbox: {\"read\": [\"/r\"]}\n    command: x\n"},
		{"servers:\n    a:\n        sandbox:\n            read:\n            - /old\n            # note\n        # of command\n        command: x\n    b: {command: y}\n",
			"servers:\n    a:\n        sandbox: {\"read\": [\"/r\"]}\n            # note\n        # of command\n        command: x\n    b: {command: y}\n"},
		{"servers:\n  b:\n    command: y\n    sandbox: off\n  a:\n    # first\n    args:\n      - sandbox: no\n      - z\n\n# end\n",
			"servers:\n  b:\n    command: y\n    sandbox: off\n  a:\n    # first\n    args:\n      - sandbox: no\n      - z\n    sandbox: {\"read\": [\"/r\"]}\n\n# end\n"},
		{"servers:\r\n  a:\r\n    command: x\r\n", "servers:\r\n  a:\r\n    command: x\r\n    sandbox: {\"read\": [\"/r\"]}\r\n"},
	} {
		after, err := install.SetYAMLField([]byte(c.before), "servers", "a", "sandbox", map[string]any{"read": []string{"/r"}})
		require.NoError(t, err, c.before)
		require.Equal(t, c.after, string(after))
	}
	for _, text := range []string{"", "servers:\n  b:\n    command: x\n", "servers:\n  a: {command: x}\n", "servers: {a: {command: x}}\n"} {
		_, err := install.SetYAMLField([]byte(text), "servers", "a", "sandbox", "default")
		require.Error(t, err, text)
	}
}

func TestKeysThatLookLikeOtherValues(t *testing.T) {
	for _, name := range []string{"127", "1e3", "true", "null", "on", "0x1f", "2001-01-01", "-", "plain-name"} {
		var entry yaml.Node
		require.NoError(t, entry.Encode(map[string]string{"url": "https://h/mcp"}))
		text, err := install.AddYAML(nil, "servers", name, &entry)
		require.NoError(t, err, name)
		var back struct{ Servers map[string]map[string]string }
		require.NoError(t, yaml.Unmarshal(text, &back), string(text))
		require.Equal(t, map[string]map[string]string{name: {"url": "https://h/mcp"}}, back.Servers, string(text))
		text, err = install.RemoveYAML(text, "servers", name)
		require.NoError(t, err, name)
		require.Equal(t, "servers:\n", string(text))
	}
}
