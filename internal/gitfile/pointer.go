package gitfile

import "strings"

// PointerTarget returns the path that a .git, commondir or gitdir contains, as git
// reads it; name is the base name of the file. The results are:
//
//	path, true   the path; that of a .git or commondir may be relative to the file's directory
//	"", true     git refuses or ignores the file
//	path, false  the path has a control character: git would end it at a NUL, and writes none
//
// A .git is read as by read_gitfile_gently of git's setup.c:
//
//	if (!starts_with(buf, "gitdir: ")) { error_code = READ_GITFILE_ERR_INVALID_FORMAT; … }
//	while (buf[len - 1] == '\n' || buf[len - 1] == '\r')
//		len--;
//	if (len < 9) { error_code = READ_GITFILE_ERR_NO_PATH; … }
//	dir = buf + 8;
//
// A commondir is read as by get_common_dir_noenv, which removes the same line
// ends, and a gitdir as by get_linked_worktree of worktree.c, which removes
// spaces, tabs and line ends (strbuf_rtrim, with the isspace of git's ctype.c).
func PointerTarget(name string, content []byte) (path string, ok bool) {
	path = string(content)
	switch name {
	case "gitdir":
		path = strings.TrimRight(path, " \t\n\r")
	case "commondir":
		path = strings.TrimRight(path, "\r\n")
	default:
		var is bool
		if path, is = strings.CutPrefix(strings.TrimRight(path, "\r\n"), "gitdir: "); !is {
			return "", true
		}
	}
	return path, !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f })
}
