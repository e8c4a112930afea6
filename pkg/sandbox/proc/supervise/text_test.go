package supervise_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// TestEveryByteIsPassed in each text of a spec, in those also that later
// versions add.
func TestEveryByteIsPassed(t *testing.T) {
	odd := "caf\xe9/\xff\u00ff\\\"\n"
	var s supervise.Spec
	fields := reflect.ValueOf(&s).Elem()
	for i := range fields.NumField() {
		name, field := fields.Type().Field(i).Name, fields.Field(i)
		switch {
		case name == "Mark" || name == "Level":
			field.SetString("ours")
		case field.Kind() == reflect.String:
			field.SetString(odd)
		case field.Type() == reflect.TypeFor[[]string]():
			field.Set(reflect.ValueOf([]string{"plain", odd, "é"}))
		case field.Type() == reflect.TypeFor[[]supervise.Root]():
			field.Set(reflect.ValueOf([]supervise.Root{{Path: odd, ReadOnly: true}, {Path: "/plain"}}))
		default: // no text
			require.Contains(t, []string{"bool", "int64", "supervise.Limits", "[]int"}, field.Type().String(), name)
		}
	}
	var line bytes.Buffer
	require.NoError(t, json.NewEncoder(&line).Encode(&s))
	require.Equal(t, 1, bytes.Count(line.Bytes(), []byte("\n")))
	require.Equal(t, odd, s.Mask[1], "the sender keeps its own")
	require.Equal(t, odd, s.Roots[0].Path)
	var got supervise.Spec
	require.NoError(t, json.NewDecoder(&line).Decode(&got))
	require.Equal(t, s, got)
}

func BenchmarkSpec(b *testing.B) {
	s := supervise.Spec{Argv: []string{"/bin/bash", "-c", "true"}, Dir: "/home/user/src"}
	for range 60 {
		s.Env = append(s.Env, "SOME_VARIABLE=some value of usual length")
		s.Mask = append(s.Mask, "/home/user/.config/some/credentials")
	}
	for b.Loop() {
		text, err := json.Marshal(&s)
		require.NoError(b, err)
		var got supervise.Spec
		require.NoError(b, json.Unmarshal(text, &got))
	}
}
