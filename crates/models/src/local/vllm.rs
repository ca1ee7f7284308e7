//! vLLM, and every other server that only speaks the protocol: `/v1/models` lists, with `max_model_len` where there is one.

use wire::Model;

use super::Place;
use super::asker::Listed;
use super::model::Facts;

/// Its models.
pub(super) fn models(place: &Place, listed: Vec<Listed>) -> Vec<Model> {
    let facts = listed.into_iter().map(|model| Facts {
        context: model.max_model_len.or(model.context_length),
        ..Facts::new(&model.id)
    });
    facts.map(|facts| facts.model(&place.id, &place.url)).collect()
}
