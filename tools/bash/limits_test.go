package main

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tags of the arguments, which cannot use constants, give the limits of limits.go.
func TestTagsGiveTheLimits(t *testing.T) {
	tag := func(field string) reflect.StructTag {
		f, ok := reflect.TypeFor[arguments]().FieldByName(field)
		require.True(t, ok, field)
		return f.Tag
	}
	longest := strconv.FormatInt(maxTimeout.Milliseconds(), 10)
	require.Equal(t, longest, tag("Timeout").Get("max"))
	require.Contains(t, tag("Timeout").Get("jsonschema"), "default "+strconv.FormatInt(defaultTimeout.Milliseconds(), 10)+",")
	require.Equal(t, longest, tag("Patience").Get("max"))
	require.Equal(t, strconv.FormatInt(defaultPatience.Milliseconds(), 10), tag("Patience").Get("default"))
	require.Equal(t, strconv.FormatFloat(maxTimeout.Seconds(), 'f', -1, 64), tag("Seconds").Get("max"))
}
