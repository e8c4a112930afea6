package mcpkittest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Snapshot starts the server bin with args and compares its tools/list answer,
// pretty-printed, with a file. With -update it writes the file instead.
func Snapshot(t *testing.T, bin, file string, args ...string) {
	t.Helper()
	c := Start(t, bin, args...)
	answer := c.Request("tools/list", nil)
	if answer.Error != nil {
		t.Fatalf("tools/list: %v", answer.Error)
	}
	c.Close()
	var list struct {
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(answer.Result, &list); err != nil {
		t.Fatalf("tools/list: %v", err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, []byte(`{"tools":`+string(list.Tools)+`}`), "", "  "); err != nil {
		t.Fatalf("tools/list: %v", err)
	}
	got.WriteByte('\n')
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update to write it", err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if diff := diffLines(string(want), got.String()); diff != "" {
		t.Errorf("the definition is not that of %s (-want +got); if the change is meant, run with -update:\n%s", file, diff)
	}
}
