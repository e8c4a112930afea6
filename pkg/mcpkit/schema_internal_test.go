package mcpkit

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Generated code may have tags that vet refuses in source.
func TestMalformedTags(t *testing.T) {
	build := func(fields ...reflect.StructField) error {
		for i := range fields {
			fields[i].Name = string(rune('A' + i))
			fields[i].Type = reflect.TypeFor[string]()
		}
		_, err := buildSchema(reflect.StructOf(fields), false)
		return err
	}
	for _, tag := range []reflect.StructTag{`json:a`, `json`, `json:"a`, `json:"a" json:"b"`, "json:`a`", ` :"x"`, `json: "a"`} {
		require.Error(t, build(reflect.StructField{Tag: tag}), string(tag))
	}
	require.ErrorContains(t, build(reflect.StructField{Tag: `json:"a"`}, reflect.StructField{Tag: `json:"a"`}),
		`the name "a" is already that of`)
	require.NoError(t, build(reflect.StructField{Tag: `json:"a"  desc:"x" `}, reflect.StructField{Tag: `yaml:"q"`}))
}

func TestNearest(t *testing.T) {
	known := []string{"path", "pattern", "old_string", "-A", "-i", "head_limit", "no_ignore"}
	for name, want := range map[string]string{
		"Path": "path", "PATH": "path", "paht": "path", "paths": "path", "oldString": "old_string",
		"old-string": "old_string", "oldstrng": "old_string", "-a": "-A", "i": "-i", "headlimit": "head_limit",
		"no_ignored": "no_ignore", "-B": "", "foo": "", "pat": "path", "bath": "path", "description": "", "": "", "limit": "",
	} {
		require.Equal(t, want, nearestName(name, known), name)
	}
}

func TestWholeNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "10.0": "10", "1e3": "1000", "1.5e1": "15", "9007199254740993": "9007199254740993",
		"18446744073709551615": "18446744073709551615", "-9223372036854775808": "-9223372036854775808",
		"100e-2": "1", "0e999999999999": "0", "0.000e5": "0",
	} {
		v, whole, fits := parseWholeNumber(text)
		require.True(t, whole && fits, text)
		require.Equal(t, want, v.decimal(), text)
	}
	for _, text := range []string{"10.5", "1e-3", "1e-999999999999999999999"} {
		_, whole, _ := parseWholeNumber(text)
		require.False(t, whole, text)
	}
	for _, text := range []string{"1e99", "18446744073709551616", "1e999999999999999999999"} {
		_, whole, fits := parseWholeNumber(text)
		require.True(t, whole, text)
		require.False(t, fits, text)
	}
}

func TestSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"oldString": "old_string", "OldString": "old_string", "old_string": "old_string", "old-string": "old_string", "filePath": "file_path",
		"jobID": "job_id", "HTTPServer": "http_server", "Path": "path", "PATH": "path", "startLineNumberBaseZero": "start_line_number_base_zero",
		"-A": "-A", "-I": "-I", "A": "A", "If": "If", "": "", "old_String": "old_string", "réSumé": "ré_sumé",
	} {
		require.Equal(t, want, snakeCase(name), name)
	}
}

// No group has an alias twice, and every alias is in the form that
// lookupProperty uses.
func TestAliasGroups(t *testing.T) {
	for group, names := range aliasGroups {
		seen := map[string]bool{}
		for _, name := range strings.Fields(names) {
			require.False(t, seen[name], "%s has %s twice", group, name)
			require.Equal(t, name, snakeCase(name))
			seen[name] = true
		}
	}
}
