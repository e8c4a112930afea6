package mcpkit

// schema is the part of JSON Schema that Go types need.
type schema struct{}

// node is one parsed JSON value.
type node struct{}
