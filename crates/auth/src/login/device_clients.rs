//! The public clients of device flows, one function for each provider (providers.md 9). The flow itself is in `device`.
//!
//! pi uses the same ids: a login in `auth.json` is refreshed by the program that needs it first, and a provider
//! refreshes a token only for the client that got it.

use super::device::DeviceFlow;
use super::endpoints::Endpoints;

/// GitHub, which gives Copilot's tokens to this client.
pub(super) fn github(endpoints: &Endpoints, domain: &str) -> DeviceFlow {
    DeviceFlow {
        code_url: Endpoints::at(&endpoints.github, domain, "login/device/code"),
        token_url: Endpoints::at(&endpoints.github, domain, "login/oauth/access_token"),
        client_id: "Iv1.b507a08c87ecfe98",
        fields: &[("scope", "read:user")],
    }
}

/// xAI, for plans with Grok.
pub(super) fn xai(endpoints: &Endpoints) -> DeviceFlow {
    DeviceFlow {
        code_url: Endpoints::below(&endpoints.xai, "device/code"),
        token_url: Endpoints::below(&endpoints.xai, "token"),
        client_id: "b1a00492-073a-47ea-816f-4c329264a828",
        fields: &[
            (
                "scope",
                "openid profile email offline_access grok-cli:access api:access",
            ),
            ("referrer", "pinion"),
        ],
    }
}

/// Kimi, for plans with Kimi Code.
pub(super) fn kimi(endpoints: &Endpoints) -> DeviceFlow {
    DeviceFlow {
        code_url: Endpoints::below(&endpoints.kimi, "api/oauth/device_authorization"),
        token_url: Endpoints::below(&endpoints.kimi, "api/oauth/token"),
        client_id: "17e5f671-d194-4dfb-9706-5516cb48c098",
        fields: &[],
    }
}

/// Meta, for plans with Muse.
pub(super) fn meta(endpoints: &Endpoints) -> DeviceFlow {
    DeviceFlow {
        code_url: Endpoints::below(&endpoints.meta, "authorization/"),
        token_url: Endpoints::below(&endpoints.meta, "token/"),
        client_id: "1031625952748946",
        fields: &[],
    }
}
