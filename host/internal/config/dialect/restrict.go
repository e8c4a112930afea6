package dialect

import "strings"

// restrictionReason returns how a field of another product limits a server in a way that the
// host does not support; "" for fields and values that only permit something or have no
// effect.
func restrictionReason(name string, n *node) string {
	value := ""
	if n.isScalar() {
		value = strings.ToLower(n.text)
	}
	on := n.kind != nullNode && value != "false" && value != "off" && value != "none"
	const (
		confined  = "this server runs without a sandbox; set sandbox: default in toolroom.yaml, or remove the server"
		unasked   = "the host asks before calls only by a policy rule with do: ask; add such a rule for this server's tools"
		elsewhere = "the host starts every server on this machine; remove the server if it must not run here"
	)
	switch normalizeName(name) {
	case "sandboxmode", "sandboxpolicy", "sandboxpermissions", "sandboxprofile", "readonly", "isolation":
		if on && !strings.Contains(value, "danger") { // danger-full-access is no sandbox
			return confined
		}
	case "network", "networkaccess", "filesystem", "allowedpaths", "allowedroots", "allowedhosts", "alloweddomains", "permission", "permissions":
		if n.kind != nullNode && value != "true" {
			return confined
		}
	case "trust", "trusted":
		if n.kind == boolNode && !on {
			return unasked
		}
	case "defaulttoolsapprovalmode", "approvalmode", "approval", "requireapproval", "requiresapproval", "requireconfirmation", "confirm":
		if on && (n.kind != textNode || value != "auto" && value != "approve" && value != "never" && value != "") {
			return unasked
		}
	case "experimentalenvironment", "environmentid":
		if on && value != "" && value != "local" {
			return elsewhere
		}
	}
	return ""
}

// warnRestricted warns of a field that limits a server in another product only. It reports
// whether it warned.
func (r *reader) warnRestricted(p pair) bool {
	why := restrictionReason(p.key, p.value)
	if why != "" {
		r.warn("has no effect: %s", why)
		r.server.Ineffective = append(r.server.Ineffective, r.field+" in "+shownName(r.doc.File)+" has no effect: "+why)
	}
	return why != ""
}

// applyRestrictingKeys applies the keys next to the servers that restrict them, or warns of them.
func (d *Document) applyRestrictingKeys() {
	for _, p := range d.beside {
		if !d.applySandboxKey(p) {
			d.warnRestrictsAll(p)
		}
	}
}

// warnRestrictsAll warns of a key next to the servers that limits all of them.
func (d *Document) warnRestrictsAll(p pair) {
	switch normalizeName(p.key) {
	case "sandbox", "sandboxenabled", "permission":
	default:
		return // of the product's own tools, more likely
	}
	if why := restrictionReason("isolation", p.value); why != "" {
		d.addProblem(p.line, "%s has no effect on the servers: %s", shownName(p.key), why)
		d.Problems[len(d.Problems)-1].Warning = true
	}
}
