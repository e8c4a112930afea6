package policy

import (
	"strings"
)

// signalNumbers maps names of signals, without SIG, to the numbers that they
// have on all systems.
var signalNumbers = map[string]string{"HUP": "1", "INT": "2", "QUIT": "3", "ABRT": "6", "KILL": "9", "ALRM": "14", "TERM": "15"}

// signalNumber returns the number of a signal given by name or number, with or
// without SIG; an unknown name in upper case.
func signalNumber(text string) string {
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if number, ok := signalNumbers[name]; ok {
		return number
	}
	return name
}

// hasSignal says whether the arguments of kill send the signal, in any
// spelling.
func hasSignal(signal string, args []field) answer {
	for i, arg := range args {
		text := strings.TrimPrefix(arg.text, "--signal=")
		switch {
		case text != arg.text:
		case arg.is("-s", "-n", "--signal") && i+1 < len(args):
			text = args[i+1].text
		case len(text) > 1 && text[0] == '-':
			text = text[1:]
			if len(text) > 1 && (text[0] == 's' || text[0] == 'n') {
				if _, ok := signalNumbers[strings.TrimPrefix(text[1:], "SIG")]; ok || strings.Trim(text[1:], "0123456789") == "" {
					text = text[1:]
				}
			}
		default:
			continue
		}
		if signalNumber(text) == signalNumber(signal) {
			return yes
		}
	}
	return no
}
