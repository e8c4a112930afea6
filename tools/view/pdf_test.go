package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/md5"
	"crypto/rc4"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestMain runs the test binary as its own PDF worker, like mcp-view.
func TestMain(m *testing.M) {
	runIfPDFWorker()
	os.Exit(m.Run())
}

// pdfFile returns a PDF with the given bodies of objects, numbered from 1. The
// first is the catalogue.
func pdfFile(objects []string, trailer string) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, object := range objects {
		offsets[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, start)
	return out.Bytes()
}

func pdfStream(dict, data string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(data), dict, data)
}

func deflated(data string) string {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, zlib.BestSpeed)
	_, _ = w.Write([]byte(data))
	_ = w.Close()
	return out.String()
}

const helvetica = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"

// simplePDF returns a PDF with a page per content stream.
func simplePDF(contents ...string) []byte {
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "", helvetica}
	var kids strings.Builder
	for _, content := range contents {
		fmt.Fprintf(&kids, "%d 0 R ", len(objects)+1)
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", len(objects)+2),
			pdfStream("/Filter /FlateDecode", deflated(content)))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [ %s] /Count %d >>", kids.String(), len(contents))
	return pdfFile(objects, "")
}

func extract(t testing.TB, data []byte, first, count int) (*pdfDocument, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.pdf")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	return pdfText(context.Background(), f, first, count)
}

func TestPDFText(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"lines":                 {"BT /F1 12 Tf 14 TL 72 700 Td (Hello, world) Tj T* (second line) Tj ET", "Hello, world\nsecond line\n"},
		"kerning":               {"BT /F1 10 Tf 72 700 Td [(W) 80 (orld) -300 (apart)] TJ ET", "World apart\n"},
		"moved right":           {"BT /F1 10 Tf 1 0 0 1 72 700 Tm (left) Tj 1 0 0 1 300 700 Tm (right) Tj ET", "left right\n"},
		"paragraph":             {"BT /F1 10 Tf 72 700 Td (one) Tj 0 -40 Td (two) Tj ET", "one\n\ntwo\n"},
		"quote operators":       {"BT /F1 10 Tf 12 TL 72 700 Td (a) Tj (b) ' 1 1 (c) \" ET", "a\nb\nc\n"},
		"win ansi":              {"BT /F1 10 Tf 72 700 Td (caf\\351 \\200) Tj ET", "café €\n"},
		"scaled by cm":          {"q 0.1 0 0 0.1 0 0 cm BT /F1 100 Tf 720 7000 Td (big) Tj 0 -140 Td (next) Tj ET Q", "big\nnext\n"},
		"unknown font, latin-1": {"BT /F9 10 Tf 72 700 Td (caf\\351) Tj ET", "café\n"},
		"unknown font":          {"BT /F9 10 Tf 72 700 Td (plain) Tj ET", "plain\n"},
		"nothing":               {"0 0 100 100 re f", "\n"},
		"unbalanced":            {"Q Q Q BT /F1 10 Tf (ok) Tj ET", "ok\n"},
		"arguments absent":      {"Td Tm TL Tf BT /F1 10 Tf TJ Tj cm (ok) Tj ET", "ok\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			data := simplePDF(test.content)
			document := readPDF(bytes.NewReader(data), int64(len(data)), 1, 10)
			require.Empty(t, document.Error)
			require.Len(t, document.Pages, 1)
			require.Empty(t, document.Pages[0].Fault)
			require.Equal(t, test.want, document.Pages[0].Text)
		})
	}
}

func TestPDFPages(t *testing.T) {
	var contents []string
	for i := 1; i <= 7; i++ {
		contents = append(contents, fmt.Sprintf("BT /F1 10 Tf 72 700 Td (page %d) Tj ET", i))
	}
	data := simplePDF(contents...)
	document, err := extract(t, data, 3, 2)
	require.NoError(t, err)
	require.Equal(t, 7, document.Total)
	require.Equal(t, []pdfPage{{Number: 3, Text: "page 3\n"}, {Number: 4, Text: "page 4\n"}}, document.Pages)
	document, err = extract(t, data, 9, 2)
	require.NoError(t, err)
	require.Equal(t, 7, document.Total)
	require.Empty(t, document.Pages)
}

func TestPDFWrappings(t *testing.T) {
	data := simplePDF("BT /F1 10 Tf 72 700 Td (ok) Tj ET")
	for name, wrapped := range map[string][]byte{
		"plain":         data,
		"version 2":     bytes.Replace(data, []byte("%PDF-1.4\n"), []byte("%PDF-2.0\n"), 1),
		"cr header":     bytes.Replace(data, []byte("%PDF-1.4\n"), []byte("%PDF-1.4\r"), 1),
		"junk before":   append([]byte("\n\n  "), data...),
		"junk after":    append(bytes.Clone(data), bytes.Repeat([]byte{0}, 3000)...),
		"no final line": bytes.TrimRight(data, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, isPDF(wrapped))
			document, err := extract(t, wrapped, 1, 1)
			require.NoError(t, err)
			require.Equal(t, "ok\n", document.Pages[0].Text)
		})
	}
	require.False(t, isPDF([]byte("a text about %PDF-1.4")))
	require.False(t, isPDF(nil))
}

func TestPDFFormsAndWideFonts(t *testing.T) {
	cmap := "begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange 2 beginbfchar <0001> <0048> <0002> <0069> endbfchar endcmap"
	data := pdfFile([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /XObject << /X 5 0 R >> >> >>",
		"<< /Type /Page /Parent 2 0 R /Contents [4 0 R 4 0 R] >>",
		pdfStream("", "q 1 0 0 1 0 -20 cm /X Do Q q /X Do Q "),
		pdfStream("/Type /XObject /Subtype /Form /Resources << /Font << /F 6 0 R >> /XObject << /X 5 0 R >> >>", "BT /F 10 Tf 0 500 Td <00010002> Tj ET /X Do"),
		"<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 7 0 R /DescendantFonts [<< /W [1 [700 300]] >>] >>",
		pdfStream("", cmap),
	}, "")
	document, err := extract(t, data, 1, 1)
	require.NoError(t, err)
	require.Contains(t, document.Pages[0].Text, "Hi\n")
}

// encryptedPDF returns a PDF that needs a password: its key does not belong to
// the empty password.
func encryptedPDF() []byte {
	cipher, _ := rc4.NewCipher(md5.New().Sum([]byte("other"))[:5])
	u := make([]byte, 32)
	cipher.XORKeyStream(u, u)
	encrypt := fmt.Sprintf("/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%x> /U <%x> >> /ID [<00> <00>]", make([]byte, 32), u)
	return pdfFile([]string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count 0 >>"}, encrypt)
}

func TestEncryptedPDFIsSaidSo(t *testing.T) {
	newer := bytes.Replace(encryptedPDF(), []byte("/V 1 /R 2"), []byte("/V 5 /R 6"), 1)
	for _, data := range [][]byte{encryptedPDF(), newer} {
		_, err := extract(t, data, 1, 1)
		require.Error(t, err)
		require.Equal(t, toolerr.PermissionDenied, toolerr.CodeOf(err))
		require.Contains(t, err.Error(), "encrypted")
	}
}

// hostilePDFs returns files that make a parser loop, recurse or allocate
// without end.
func hostilePDFs() map[string][]byte {
	page := "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>"
	with := func(pages, content, trailer string) []byte {
		return pdfFile([]string{"<< /Type /Catalog /Pages 2 0 R >>", pages, helvetica, page, content}, trailer)
	}
	one := "<< /Type /Pages /Kids [4 0 R] /Count 1 >>"
	xref := pdfFile([]string{"<< /Type /Catalog >>"}, "")
	start := bytes.LastIndex(xref, []byte("\nxref")) + 1
	return map[string][]byte{
		"prev ring":        pdfFile([]string{"<< /Type /Catalog >>"}, fmt.Sprintf("/Prev %d", start)),
		"kids ring":        with("<< /Type /Pages /Kids [2 0 R 2 0 R 2 0 R] /Count 1000000000 >>", pdfStream("", "BT ET"), ""),
		"parent ring":      with("<< /Type /Pages /Kids [4 0 R] /Count 1 /Parent 4 0 R >>", pdfStream("", "BT ET"), ""),
		"length of itself": with(one, "<< /Length 5 0 R >>\nstream\nBT ET\nendstream", ""),
		"open hex string":  with(one, pdfStream("", "BT /F1 10 Tf <00"), ""),
		"open dictionary":  with(one, pdfStream("", "<< /A << /B "), ""),
		"deep arrays":      with(one, pdfStream("", strings.Repeat("[", 2_000_000)), ""),
		"zip bomb":         with(one, pdfStream("/Filter /FlateDecode", deflated(strings.Repeat("( ) Tj ", 2_000_000))), ""),
		"string bomb":      with(one, pdfStream("/Filter /FlateDecode", deflated("("+strings.Repeat("A", 60_000_000))), ""),
		"huge table":       bytes.Replace(xref, []byte("xref\n0 2"), []byte("xref\n4000000000000 2"), 1),
		"large table":      bytes.Replace(xref, []byte("xref\n0 2"), []byte("xref\n80000000 2"), 1),
		"no trailer":       []byte("%PDF-1.4\n%%EOF"),
		"only a header":    []byte("%PDF-1.4\n"),
		"noise":            append([]byte("%PDF-1.4\n"), noise(50, 50).Pix...),
	}
}

func TestHostilePDFsEndPlainly(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for name, data := range hostilePDFs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			file := filepath.Join(t.TempDir(), "x.pdf")
			require.NoError(t, os.WriteFile(file, data, 0o600))
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			document, err := pdfText(ctx, f, 1, 5)
			if err == nil {
				require.LessOrEqual(t, len(document.Pages), 5)
				return
			}
			require.NotEmpty(t, err.Error())
			require.NotContains(t, err.Error(), "goroutine")
			t.Log(err)
		})
	}
}

func FuzzPDFLayout(f *testing.F) {
	f.Add("BT /F1 10 Tf 72 700 Td [(W) 80 (orld)] TJ T* (x) ' ET")
	f.Add("q 1 0 0 0 0 0 cm /X Do Q 1e300 Tz BT -1e300 0 0 0 0 0 Tm /F1 1 Tf (a) Tj (b) Tj ET")
	f.Fuzz(func(t *testing.T, content string) {
		// The library loops forever on a hexadecimal string without an
		// end, which is a reason for the separate process; the layout
		// code must not loop.
		if strings.Contains(content, "<") {
			return
		}
		data := simplePDF(content)
		document := readPDF(bytes.NewReader(data), int64(len(data)), 1, 3)
		require.LessOrEqual(t, len(document.Pages), 1)
	})
}

func TestLigaturesAreLetters(t *testing.T) {
	require.Equal(t, "office file  x", cleanGlyphs("o\ufb03ce \ufb01le\u00a0\u00ad\x01\tx"))
}
