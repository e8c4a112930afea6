package dialect_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"go.yaml.in/yaml/v3"
)

func TestSchemaIsTheSnapshot(t *testing.T) {
	const name = "testdata/toolroom.schema.json"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(name, append(dialect.Schema(), '\n'), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), string(dialect.Schema())+"\n")
}

// schemaCheck returns what the schema says of a text.
func schemaCheck(t *testing.T) func(text string) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(dialect.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:///toolroom.schema.json", doc))
	schema, err := c.Compile("mem:///toolroom.schema.json")
	require.NoError(t, err)
	return func(text string) error {
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(text), &value))
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		return schema.Validate(instance)
	}
}

// What the schema says and what is read agree: on toolroom's own file, on
// what every other fixture means, and on mistakes.
func TestSchemaAgreesWithTheReader(t *testing.T) {
	validate := schemaCheck(t)
	for _, file := range fixtures(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		d := dialect.Parse(file, text, dialect.Options{})
		require.NoError(t, validate(canonical(t, d)), file)
	}
	own, err := os.ReadFile("testdata/fixtures/toolroom.yaml")
	require.NoError(t, err)
	require.NoError(t, validate(string(own)))
	for _, text := range []string{
		"server: {}",
		"servers: {x: {}}",
		"servers: {x: {comand: a}}",
		"servers: {x: {command: a, url: http://h}}",
		"servers: {x: {command: a, args: b}}",
		"servers: {x: {command: a, timeout: 30}}",
		"servers: {x: {command: a, timeout: soon}}",
		"servers: {x: {command: a, scope: all}}",
		"servers: {x: {command: a, era: old}}",
		"servers: {x: {url: http://h, transport: ws}}",
		"servers: {x: {command: a, max_concurrent: 0}}",
		"servers: {x: {command: a, tools: {alow: [b]}}}",
		"servers: {x: {command: a, env: {K: [1]}}}",
		"tool_dirs: {a: b}",
		"inputs: [{}]",
	} {
		require.Error(t, validate(text), text)
		require.Error(t, dialect.Parse("toolroom.yaml", []byte(text), dialect.Options{}).Problems.Err(), text)
	}
}
