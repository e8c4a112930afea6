package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// brief writes symbols as "name start-line-end@depth".
func brief(symbols []symbol) string {
	var out []string
	for _, s := range symbols {
		out = append(out, fmt.Sprintf("%s %d-%d-%d@%d", s.Name, s.Start, s.Line, s.End, s.Depth))
	}
	return strings.Join(out, "\n")
}

func TestOutlines(t *testing.T) {
	tests := []struct{ file, text, want string }{
		{"a.go", "package a\n\n// T is.\ntype T struct {\n\tx int\n}\n\n// M does.\nfunc (t *T[K]) M() {\n}\n\nconst (\n\t// A is\n\tA = 1\n\tB = 2\n)\n\nvar x, _ = 1, 2\n",
			"T 3-4-6@0\nT.M 8-9-10@0\nA 13-14-14@0\nB 15-15-15@0\nx 18-18-18@0"},
		{"broken.go", "package a\n\nfunc A() {\n\tif {\n}\n\nfunc B(x int {\n}\n\nfunc C() {}\n", "A 3-3-6@0\nB 7-7-8@0\nC 10-10-10@0"},
		{"a.py", "import os\n\n@dec\nclass A(B):\n    \"\"\"def not_me():\n    \"\"\"\n    x = 1\n\n    async def m(self):\n        return {\n        }\n\n    # about n\n    def n(self,\n          x):\n        pass\n\nLIMIT = 3\n\ndef f():\n    pass\n",
			"A 3-4-16@0\nm 9-9-11@1\nn 13-14-16@1\nLIMIT 18-18-18@0\nf 20-20-21@0"},
		{"a.ts", "import x from 'y'\n\n/** Doc { */\nexport default class A extends B<C> {\n  private async m(a: string): Promise<void> {\n    if (x) {\n    }\n  }\n  get size(): number {\n    return `}${1}`\n  }\n}\nexport const f = (a) => {\n  return a\n}\nexport function* g() {}\ninterface I { a: 1 }\ntype T = 'it {'\n",
			"A 3-4-12@0\nm 5-5-8@1\nsize 9-9-11@1\nf 13-13-15@0\ng 16-16-16@0\nI 17-17-17@0\nT 18-18-18@0"},
		{"a.rs", "use x;\n\n/// Doc\n#[derive(Debug)]\npub struct S<'a> {\n    x: &'a str,\n}\n\nimpl<'a> Display for S<'a> {\n    fn fmt(&self) -> R {\n        '{'\n    }\n}\n\npub(crate) async fn go() {\n}\n",
			"S 3-5-7@0\nDisplay for S<'a> 9-9-13@0\nfmt 10-10-12@1\ngo 15-15-16@0"},
		{"A.java", "package a;\n\n@Entity(name = \"x\")\npublic final class A<T> extends B {\n    private int x = f(1);\n    @Override public List<Map<String, T>> get(int a) throws E {\n        return new X() {\n        };\n    }\n    A() {\n    }\n    enum E { A, B }\n}\n",
			"A 3-4-13@0\nget 6-6-9@1\nA 10-10-11@1\nE 12-12-12@1"},
		{"a.c", "#include <x.h>\n#define MAX(a) (a)\n\nstatic int g;\n\n/* Doc\n * more\n */\nstatic const char *name(int a,\n                        int b)\n{\n\tif (a) {\n\t}\n}\n\nint declared(void);\n\nstruct point {\n\tint x;\n};\n",
			"MAX 2-2-2@0\nname 6-9-14@0\npoint 18-18-20@0"},
		{"a.cpp", "namespace n {\ntemplate <class T>\nclass A : public B {\n};\n}\nint A::run(int x) {\n}\nA::~A() {\n}\n",
			"n 1-1-5@0\nA 3-3-4@1\nA::run 6-6-7@0\nA::~A 8-8-9@0"},
		{"a.rb", "module M\n  class A < B\n    def self.x?(a)\n      if a\n      end\n    end\n\n    def y; end\n  end\nend\n",
			"M 1-1-10@0\nA 2-2-9@1\nself.x? 3-3-6@2\ny 8-8-8@2"},
		{"a.php", "<?php\nnamespace A\\B;\nabstract class C {\n  public static function m(): int {\n    return 1;\n  }\n}\nfunction &f() {\n}\n",
			"A\\B 2-2-2@0\nC 3-3-7@0\nm 4-4-6@1\nf 8-8-9@0"},
		{"A.cs", "namespace A.B;\npublic partial class C : D {\n    public async Task<int> RunAsync(string a) {\n        return await X();\n    }\n    internal record R(int X);\n}\n",
			"A.B 1-1-1@0\nC 2-2-7@0\nRunAsync 3-3-5@1\nR 6-6-6@1"},
		{"a.kt", "data class P(val x: Int)\n\nsuspend fun <T> List<T>.go(a: Int): T {\n}\n\nobject O {\n    fun m() = 1\n}\n",
			"P 1-1-1@0\nList<T>.go 3-3-4@0\nO 6-6-8@0\nm 7-7-7@1"},
		{"a.swift", "public struct S: P {\n    init(x: Int) {\n    }\n    func go() -> Int {\n    }\n}\nextension S {\n}\n",
			"S 1-1-6@0\ninit 2-2-3@1\ngo 4-4-5@1\nS 7-7-8@0"},
		{"a.sh", "#!/bin/sh\n# does a\na() {\n  echo '{'\n}\nfunction b {\n  :\n}\n", "a 2-3-5@0\nb 6-6-8@0"},
		{"a.yaml", "# top\na: 1\nb:\n  c: 2\n  d:\n    - x: 1\nlist:\n- one: 1\n- two: 2\n", "a 1-2-2@0\nb 3-3-6@0\nlist 7-7-9@0"},
		{"a.toml", "x = 1\n[a]\ny = 1\n\n[[a.b]]\nz = 2\n", "a 2-2-3@0\na.b 5-5-6@0"},
		{"Makefile", "X := 1\n\n# build it\nbuild: a b\n\tgo build\n.PHONY: build\n", "build 3-4-5@0\n.PHONY 6-6-6@0"},
		{"a.md", "---\ntitle: x\n---\n# One\ntext\n## Two ##\n```sh\n# no heading\n```\n    # code\nThree\n=====\n#nospace\n### Four\n", "One 4-4-10@0\nTwo 6-6-10@1\nThree 11-11-14@0\nFour 14-14-14@1"},
		{"a.adoc", "= Doc\n== Part\ntext\n", "Doc 1-1-3@0\nPart 2-2-3@1"},
		{"a.bin", "func main", ""},
		{"a.go", "", ""},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			require.Equal(t, test.want, brief(findSymbols(test.file, []byte(test.text))))
			crlf := strings.ReplaceAll(test.text, "\n", "\r\n")
			require.Equal(t, test.want, brief(findSymbols(test.file, []byte(crlf))), "with CRLF")
		})
	}
}

func TestOutlineStaysInItsBudget(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "class C%d:\n    def m(self):\n        pass\n", i)
	}
	symbols := findSymbols("a.py", []byte(text.String()))
	require.Len(t, symbols, 1000)
	small := renderOutline(symbols, 1000)
	require.LessOrEqual(t, len(small), 1030)
	require.Contains(t, small, "1-3  class C0:")
	require.NotContains(t, small, "def m", "the top level comes first")
	require.Regexp(t, `\(\d+ more symbols\)\n$`, small)
	large := renderOutline(symbols, 1<<20)
	require.Contains(t, large, "  2-3  def m(self):")
	require.NotContains(t, large, "more symbols")
	require.Empty(t, renderOutline(nil, 1000))
}

func TestOutlineOfRealGo(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", "net", "http", "server.go"))
	require.NoError(t, err)
	symbols := findSymbols("server.go", text)
	require.Greater(t, len(symbols), 100)
	lines := strings.Split(string(text), "\n")
	for _, s := range symbols {
		require.LessOrEqual(t, s.Start, s.Line)
		require.LessOrEqual(t, s.Line, s.End)
		require.Equal(t, strings.TrimSpace(lines[s.Line-1]), s.Text)
	}
}

func FuzzOutline(f *testing.F) {
	names := []string{"a.go", "a.py", "a.ts", "a.rs", "a.java", "a.c", "a.rb", "a.sh", "a.yaml", "a.toml", "a.md", "a.sql", "Makefile", "a.css"}
	f.Add(uint8(1), "def f():\n  '''\n")
	f.Add(uint8(10), "# A\n```\n# B\n")
	f.Add(uint8(2), "class A {\n m() {\n`}\n")
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		lines := strings.Count(text, "\n") + 1
		symbols := findSymbols(names[int(which)%len(names)], []byte(text))
		for i, s := range symbols {
			require.NotEmpty(t, s.Name)
			require.True(t, 1 <= s.Start && s.Start <= s.Line && s.Line <= s.End && s.End <= lines, "%+v of %d lines", s, lines)
			if i > 0 {
				require.LessOrEqual(t, symbols[i-1].Line, s.Line)
			}
		}
		renderOutline(symbols, 300)
	})
}
