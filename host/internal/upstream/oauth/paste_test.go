package oauth

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadPasted(t *testing.T) {
	long := "http://127.0.0.1/callback?code=" + strings.Repeat("x", 9000)
	for in, want := range map[string]string{
		long + "\nrest":                long,
		"no end":                       "no end",
		"wrnog\x7f\x7f\x7fong\n":       "wrong",
		"\x08wrong\x15right\n":         "right",
		"a\x04b\n":                     "a",
		"\n \r\nagain\n":               "again",
		" \"quoted\"\t\r\n":            "quoted",
		"'quoted'\x04":                 "quoted",
		"<in brackets>\n":              "in brackets",
		"\x1b[200~marked\x1b[201~\n":   "marked",
		"\x1b[200~'both'\n\x1b[201~\n": "both",
		"\x1b[200~\x1b[201~\n''\nlast": "last",
	} {
		got, err := ReadPasted(t.Context(), strings.NewReader(in), nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", "\x04", "a\x7f\x04b\n", "\n\n", " \x04"} {
		_, err := ReadPasted(t.Context(), strings.NewReader(in), nil)
		require.ErrorIs(t, err, io.EOF)
	}
	var echo strings.Builder
	_, err := readPasted(strings.NewReader("\x1b[Aab\x7fc\n"), &echo)
	require.NoError(t, err)
	require.Equal(t, "[Aab\b \bc\n", echo.String(), "no control character of the input")

	in, out := io.Pipe()
	defer out.CloseWithError(errors.New("closed")) //nolint:errcheck // it ends the reading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ReadPasted(ctx, in, nil)
	require.ErrorIs(t, err, context.Canceled)
}
