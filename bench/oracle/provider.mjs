// The OpenID provider `oidc-provider`, which is certified, as the authorization
// server of the tests of package bench/signin. Its arguments are the address
// of the resource that tokens are for and the format of the tokens, opaque or jwt.
// alice is in the group writers, everybody else in readers. It prints its issuer as the first line.
// It is also the identity provider of an enterprise: it exchanges ID tokens of its client sso for
// identity assertions (ID-JAG), and accepts these as an authorization server.
//
// Below /test/ the tests ask for what happened, and have tokens expire:
//   GET /test/events                  {name: count} of the provider's events
//   POST /test/expire?kind=AccessToken  deletes all tokens of a kind
import { createServer } from "node:http";
import { once } from "node:events";
import { SignJWT, createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from "jose";
import { Provider, errors } from "oidc-provider";

const [resource, accessTokenFormat = "opaque"] = process.argv.slice(2);

// stored has the provider's models: kind -> id -> payload.
const stored = new Map();

// Memory keeps models until the process ends. The provider requires this
// interface of an adapter.
class Memory {
  constructor(kind) {
    if (!stored.has(kind)) stored.set(kind, new Map());
    this.models = stored.get(kind);
  }
  async upsert(id, payload) { this.models.set(id, payload); }
  async find(id) { return this.models.get(id); }
  async findByUserCode(code) { return [...this.models.values()].find((one) => one.userCode === code); }
  async findByUid(uid) { return [...this.models.values()].find((one) => one.uid === uid); }
  async consume(id) { this.models.get(id).consumed = Math.floor(Date.now() / 1000); }
  async destroy(id) { this.models.delete(id); }
  async revokeByGrantId(grant) {
    for (const models of stored.values()) {
      for (const [id, one] of models) if (one.grantId === grant) models.delete(id);
    }
  }
}

const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const idJAG = "urn:ietf:params:oauth:token-type:id-jag";
const signing = await generateKeyPair("RS256", { extractable: true });

const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  adapter: Memory,
  scopes: ["openid", "offline_access", "read", "write"],
  cookies: { keys: ["test"] },
  jwks: { keys: [{ ...(await exportJWK(signing.privateKey)), kid: "test", alg: "RS256", use: "sig" }] },
  // A confidential client of the resource, and a client for the host that was
  // registered by hand.
  clients: [
    {
      client_id: "resource", client_secret: "resource-secret", application_type: "native", scope: "openid",
      redirect_uris: ["http://127.0.0.1/sign-in/user"], grant_types: ["authorization_code", exchange],
    },
    {
      client_id: "by-hand", client_secret: "by-hand-secret", application_type: "native",
      redirect_uris: ["http://127.0.0.1/callback"], grant_types: ["authorization_code", "refresh_token", jwtBearer],
    },
    {
      client_id: "sso", client_secret: "sso-secret", application_type: "native", scope: "openid offline_access",
      redirect_uris: ["http://127.0.0.1/callback"], grant_types: ["authorization_code", "refresh_token", exchange],
    },
  ],
  // Native programs choose the port of their redirect address (RFC 8252, 7.3).
  extraTokenClaims: (_, token) => ({ groups: [token.accountId === "alice" ? "writers" : "readers"] }),
  rotateRefreshToken: true,
  issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
  features: {
    deviceFlow: { enabled: true },
    introspection: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resource) throw new Error(`unknown resource ${indicator}`);
        return { scope: "read write", audience: resource, accessTokenFormat, accessTokenTTL: 3600 };
      },
    },
  },
});

// Token exchange (RFC 8693), which the provider does not have itself: the resource
// exchanges a token that is for it for one that is for another resource.
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
provider.registerGrantType(exchange, async (ctx) => {
  if (ctx.oidc.params.requested_token_type === idJAG) return assertIdentity(ctx);
  const { subject_token: given, subject_token_type: type, resource: target } = ctx.oidc.params;
  if (type !== "urn:ietf:params:oauth:token-type:access_token" || typeof target !== "string") throw new errors.InvalidRequest("malformed exchange");
  const opaque = await provider.AccessToken.find(given);
  let subject = opaque && { sub: opaque.accountId, aud: opaque.aud };
  if (!subject) subject = (await jwtVerify(given, keys, { issuer }).catch(() => { throw new errors.InvalidGrant("the token is not valid"); })).payload;
  if (subject.aud !== resource) throw new errors.InvalidGrant("the token is for another resource");
  if (subject.sub === "mallory") throw new errors.AccessDenied();
  const token = new provider.AccessToken({ accountId: subject.sub, client: ctx.oidc.client, scope: "read", gty: "exchange" });
  token.resourceServer = new provider.ResourceServer(target, { scope: "read", audience: target, accessTokenFormat: "opaque", accessTokenTTL: 3600 });
  const value = await token.save();
  events["token_exchange"] = (events["token_exchange"] ?? 0) + 1;
  ctx.body = { access_token: value, issued_token_type: "urn:ietf:params:oauth:token-type:access_token", token_type: "Bearer", expires_in: 3600, scope: "read" };
}, ["subject_token", "subject_token_type", "requested_token_type", "resource", "audience", "scope"]);

// assertIdentity exchanges an ID token for an identity assertion for an authorization server.
async function assertIdentity(ctx) {
  const { subject_token: given, subject_token_type: type, resource: target, audience, scope } = ctx.oidc.params;
  const client = ctx.oidc.client.clientId;
  if (type !== "urn:ietf:params:oauth:token-type:id_token" || target !== resource || audience !== issuer) throw new errors.InvalidRequest("malformed exchange");
  const user = (await jwtVerify(given, keys, { issuer, audience: client }).catch(() => { throw new errors.InvalidGrant("the ID token is not valid"); })).payload.sub;
  if (user === "mallory") throw new errors.AccessDenied();
  const assertion = await new SignJWT({ resource, client_id: "by-hand", scope }).setProtectedHeader({ alg: "RS256", kid: "test", typ: "oauth-id-jag+jwt" })
    .setIssuer(issuer).setSubject(user).setAudience(audience).setJti(crypto.randomUUID()).setIssuedAt().setExpirationTime("5m").sign(signing.privateKey);
  events["id_jag"] = (events["id_jag"] ?? 0) + 1;
  ctx.body = { access_token: assertion, issued_token_type: idJAG, token_type: "N_A", expires_in: 300 };
}

// An identity assertion is accepted as an authorization grant (RFC 7523).
provider.registerGrantType(jwtBearer, async (ctx) => {
  const { payload } = await jwtVerify(ctx.oidc.params.assertion, keys, { issuer, audience: issuer, typ: "oauth-id-jag+jwt" })
    .catch(() => { throw new errors.InvalidGrant("the assertion is not valid"); });
  if (payload.client_id !== ctx.oidc.client.clientId || payload.resource !== resource) throw new errors.InvalidGrant("the assertion is for another client");
  const token = new provider.AccessToken({ accountId: payload.sub, client: ctx.oidc.client, scope: "read", gty: "jwt-bearer" });
  token.resourceServer = new provider.ResourceServer(resource, { scope: "read", audience: resource, accessTokenFormat: "opaque", accessTokenTTL: 3600 });
  ctx.body = { access_token: await token.save(), token_type: "Bearer", expires_in: 3600, scope: "read" };
}, ["assertion", "scope", "resource"]);

const events = {};
for (const name of ["refresh_token.saved", "refresh_token.consumed", "access_token.saved", "grant.revoked", "registration_create.success", "access_token.destroyed", "refresh_token.destroyed", "grant.error"]) {
  provider.on(name, () => { events[name] = (events[name] ?? 0) + 1; });
}
provider.on("server_error", (_, error) => console.error(error));

const serve = provider.callback();
server.on("request", (request, response) => {
  const url = new URL(request.url, issuer);
  switch (url.pathname) {
    case "/test/events":
      response.end(JSON.stringify(events));
      break;
    case "/test/expire":
      stored.get(url.searchParams.get("kind"))?.clear();
      response.end("{}");
      break;
    default:
      serve(request, response);
  }
});
console.log(issuer);
