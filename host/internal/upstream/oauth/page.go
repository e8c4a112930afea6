package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
)

// pageStyle is the style sheet of the pages. It follows the light or dark setting of the system.
const pageStyle = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:15vh auto;padding:0 1em}`

// WritePage answers a request of a browser with a page of a sign-in: a title and a text, both
// without markup. The page loads nothing, runs no script, cannot be framed and is not stored.
func WritePage(w http.ResponseWriter, status int, title, text string) {
	style := sha256.Sum256([]byte(pageStyle))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// The icon is in the page, so that the browser does not request /favicon.ico.
	h.Set("Content-Security-Policy", "default-src 'none'; img-src data:; style-src 'sha256-"+base64.StdEncoding.EncodeToString(style[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	title, text = html.EscapeString(title), html.EscapeString(text)
	fmt.Fprintf(w, `<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>%s</title>
<link rel="icon" href="data:,">
<style>%s</style>
<h1>%s</h1>
<p>%s</p>
</html>
`, title, pageStyle, title, text) //nolint:errcheck // the browser has gone
}
