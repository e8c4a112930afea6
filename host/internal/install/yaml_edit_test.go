package install_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
