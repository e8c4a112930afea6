//go:build oracle

package signin

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
)

// browserUser is the variable that makes the test's program a browser, in which
// the user it names signs in.
const browserUser = "SIGNIN_BROWSER_USER"

var (
	formTag  = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	inputTag = regexp.MustCompile(`<input([^>]*)>`)
	attr     = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
)

func attributes(tag string) map[string]string {
	all := map[string]string{}
	for _, found := range attr.FindAllStringSubmatch(tag, -1) {
		all[found[1]] = html.UnescapeString(found[2])
	}
	return all
}

// browse opens an address, signs in as user with the password that the provider
// accepts, enters the code of a device if it is asked for, and agrees. It returns
// the text of the last page.
func browse(address, user, code string) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := &http.Client{Jar: jar}
	res, err := browser.Get(address)
	for range 10 {
		if err != nil {
			return "", err
		}
		page, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			return "", err
		}
		if res.StatusCode >= http.StatusBadRequest {
			return "", fmt.Errorf("%s: %s: %s", res.Request.URL, res.Status, page)
		}
		form := formTag.FindStringSubmatch(string(page))
		if form == nil {
			return string(page), nil
		}
		fields := url.Values{}
		for _, input := range inputTag.FindAllStringSubmatch(form[2], -1) {
			a := attributes(input[1])
			switch a["name"] {
			case "":
			case "login":
				fields.Set("login", user)
			case "password":
				fields.Set("password", "any")
			case "user_code":
				fields.Set("user_code", cmp.Or(a["value"], code))
			default:
				fields.Set(a["name"], a["value"])
			}
		}
		to, err := res.Request.URL.Parse(attributes(form[1])["action"])
		if err != nil {
			return "", err
		}
		res, err = browser.PostForm(to.String(), fields)
		if err != nil {
			return "", err
		}
	}
	return "", errors.New("the provider asks without end")
}
