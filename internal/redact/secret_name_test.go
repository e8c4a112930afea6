package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/redact"
)

func TestName(t *testing.T) {
	secret := `
		token TOKEN Token accessToken access_token ACCESS-TOKEN refreshToken id_token idToken bearerToken x-auth-token csrf-token API_TOKENS accessTokens tokenValue GITHUB_TOKEN
		secret client_secret clientSecret CLIENT-SECRET secrets secretKey AWS_SECRET_ACCESS_KEY webhookSecret
		password passwd PASSWORD dbPassword db_password userPasswd passphrase passcode keyPassphrase pass MYSQL_PASS smtp-pass pwd dbPwd
		apiKey api_key API-KEY apikey X-Api-Key x_api_key openaiApiKey OPENAI_API_KEY privateKey private_key PRIVATE-KEY sshPrivateKey accessKey access_key_id AWS_ACCESS_KEY_ID
		signing_key encryptionKey SSH_KEY sshKey STRIPE_KEY_LIVE masterKey accountKey
		auth oauth OAuth oauth2 oauthState x-auth basicAuth proxy_auth authKey Authorization authorization PROXY-AUTHORIZATION authHeader _authToken npm_config__auth
		cookie Cookie Set-Cookie setCookie cookies sessionCookie session sessionId session_id SESSION-ID Mcp-Session-Id JSESSIONID PHPSESSID sessionKey user_session
		credential credentials gcpCredentials creds MY_PAT githubPat pat jwt JWT userJwt dsn SENTRY_DSN sentryDsn connectionString connection_string DATABASE_URL databaseUrl
		signature X-Signature webhook_url SLACK_WEBHOOK otp totpCode csrf_value requestState`
	for _, name := range strings.Fields(secret) {
		require.True(t, redact.IsSecretName(name), name)
	}
	ordinary := `
		tokens max_tokens maxTokens MAX_TOKENS total_tokens totalTokens prompt_tokens completionTokens input_tokens cached_tokens cacheReadInputTokens cache_creation_input_tokens
		max_completion_tokens max_output_tokens reasoning_tokens reservedOutputTokens token_count tokenCount token_limit tokenBudget tokens_per_minute tokenizer tokenization progressToken
		toolTokens messageTokens tokens_used
		author authors Author authority author_name GIT_AUTHOR_NAME
		key keys keyboard monkey primary_key primaryKey foreignKey public_key PUBLIC-KEY sortKey partition_key cacheKey idempotency_key
		path pattern patch compat compass passed passive bypass passenger sessions session_count sessionName description command name content value url query cursor id etag`
	for _, name := range append(strings.Fields(ordinary), "", "é", "-", "__") {
		require.False(t, redact.IsSecretName(name), name)
	}
}

func TestIssued(t *testing.T) {
	for _, word := range []string{"sk-abcdefghijkl", "ghp_0123456789abcdef", "AKIA0123456789ABCDEF", "eyJhbGciOiJIUzI1NiJ9", "xoxb-123456789012"} {
		require.True(t, redact.IsIssuedKey(word), word)
	}
	for _, word := range []string{"sk-", "sk-short", "skeleton-of-a-house", "", "hello", "npm_install"} {
		require.False(t, redact.IsIssuedKey(word), word)
	}
}
