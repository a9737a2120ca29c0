//! `models`: the models that are known, and those that the servers of the settings offer.

use std::process::ExitCode;

use backstitch::agent_file::{AgentDefinition, BuildOptions, ModelProvider, PriceDefinition};
use backstitch::report::{ListedModel, ModelsReport, ServerModels};
use clap::Args;

use crate::common::{Common, counted};
use crate::config::Config;
use crate::keys;
use crate::open::trusted::add_project;
use crate::project;
use crate::report::{Report, ReportLine};
use crate::terminal::{Pager, Role, Table, Text, grouped};
use crate::usage;

/// Columns that the name of a model gets before other columns are left out.
const ROOM: usize = 24;

#[derive(Args)]
pub(crate) struct Models {
    /// Provider whose models are listed. Default: all.
    #[arg(value_name = "PROVIDER")]
    provider: Option<String>,
    /// Ask no server. Default: the servers of your settings are asked, and those of providers whose key is set.
    #[arg(long)]
    offline: bool,
}

impl Models {
    pub(crate) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (mut config, root) = (Config::load()?, project::root(&std::env::current_dir()?));
        add_project(&root, &mut config)?;
        let mut definition = AgentDefinition::default();
        config.complete(&mut definition, |_| false)?;
        let asked = asked_providers(&definition);
        let mut report = ModelsReport::of_table();
        report.settings = of_settings(&definition, &config);
        if let Some(name) = &self.provider {
            self.keep(name, &mut report, &definition)?;
        }
        let is_named =
            |provider: &ModelProvider| self.provider.as_ref().is_none_or(|name| provider.as_str() == name);
        if !self.offline {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            for provider in asked.iter().filter(|provider| is_named(provider)) {
                let options = BuildOptions { key: Box::new(keys::key), transport: None };
                let definition = at_its_address(&definition, provider);
                report.servers.push(runtime.block_on(ServerModels::ask(&definition, provider, &options)));
            }
        }
        let lines = lines(&report);
        let _pager = Pager::new();
        Ok(Report::new(&report).lines(lines.into_iter().map(ReportLine::Text)).print(common))
    }

    /// Leaves out the models of other providers.
    fn keep(
        &self,
        name: &str,
        report: &mut ModelsReport,
        definition: &AgentDefinition,
    ) -> anyhow::Result<()> {
        let defined = definition.providers.iter().map(|provider| provider.name.clone());
        let built_in = ModelProvider::built_in().map(|provider| provider.as_str().to_owned());
        let known: Vec<_> = defined.chain(built_in.filter(|known| known != "scripted")).collect();
        if !known.iter().any(|known| known == name) {
            return usage::refuse(format!("there is no provider {name:?}; there are {}", known.join(", ")));
        }
        let is_of = |model: &ListedModel| model.model.split_once(':').is_some_and(|(of, _)| of == name);
        report.known.retain(is_of);
        report.settings.retain(is_of);
        Ok(())
    }
}

/// Returns the definition with its address, if that is the one of this provider.
fn at_its_address(definition: &AgentDefinition, provider: &ModelProvider) -> AgentDefinition {
    let is_main = definition.model.as_ref().is_some_and(|model| model.provider == *provider);
    let base_url = definition.base_url.clone().filter(|_| is_main);
    AgentDefinition { base_url, ..definition.clone() }
}

/// Returns the providers that are asked: those that the settings define or choose, and those with a key.
fn asked_providers(definition: &AgentDefinition) -> Vec<ModelProvider> {
    let chosen = definition.model.iter().map(|model| model.provider.clone());
    let chosen = chosen.filter(|provider| *provider != ModelProvider::Scripted);
    let defined = definition.providers.iter().filter(|provider| provider.discover);
    let defined = defined.map(|provider| ModelProvider::Defined(provider.name.as_str().into()));
    let has_key = |provider: &ModelProvider| {
        let variables = provider.key_variables();
        variables.iter().any(|variable| keys::key(variable).is_some())
    };
    let mut asked: Vec<ModelProvider> = Vec::new();
    for provider in chosen.chain(defined).chain(ModelProvider::built_in().filter(has_key)) {
        // Both formats of OpenAI have the same models.
        let is_twice =
            provider.as_str() == "openai-chat" && asked.iter().any(|known| known.as_str() == "openai");
        if !is_twice && asked.iter().all(|known| known.as_str() != provider.as_str()) {
            asked.push(provider);
        }
    }
    asked
}

/// Returns the windows and prices of the settings.
fn of_settings(definition: &AgentDefinition, config: &Config) -> Vec<ListedModel> {
    let mut all: Vec<ListedModel> = definition
        .prices
        .iter()
        .map(|(model, price)| ListedModel { model: model.clone(), window: None, price: Some(*price) })
        .collect();
    for (model, window) in config.windows() {
        match all.iter_mut().find(|listed| listed.model == model) {
            Some(listed) => listed.window = Some(window),
            None => all.push(ListedModel { model, window: Some(window), price: None }),
        }
    }
    all
}

fn lines(report: &ModelsReport) -> Vec<Text> {
    let mut lines = Vec::new();
    if !report.known.is_empty() {
        let heading = Text::new().add(Role::Heading, "known models");
        let (as_of, source) = (&report.as_of, &report.source);
        lines.push(
            heading.plain(format!(", prices in {} per million tokens, as of {as_of}", report.currency)),
        );
        lines.push(Text::new().add(Role::Dim, format!("source: {source}")));
        lines.extend(table(&report.known));
    }
    if !report.settings.is_empty() {
        lines.push(Text::new());
        lines.push(Text::new().add(Role::Heading, "your settings").plain(", which come first"));
        lines.extend(table(&report.settings));
    }
    for server in &report.servers {
        lines.push(Text::new());
        let heading = Text::new().add(Role::Heading, &server.provider).plain(format!(" at {}", server.url));
        match &server.error {
            Some(error) => lines.push(heading.plain(": ").add(Role::Failure, error)),
            None => {
                lines.push(heading.plain(format!(" offers {}", counted(server.models.len(), "model"))));
                lines.extend(table(&server.models));
            }
        }
    }
    if lines.is_empty() {
        lines.push("no models are known".into());
    }
    lines
}

fn table(models: &[ListedModel]) -> Vec<Text> {
    if models.is_empty() {
        return Vec::new();
    }
    let plain = |text: String| Text::new().plain(text);
    let mut table = Table::new(["MODEL", "WINDOW", "IN", "CACHED", "OUT"]);
    table = table.align_right(1..5).leave_out([3, 1], ROOM);
    for model in models {
        let price = |of: fn(&PriceDefinition) -> Option<f64>| match &model.price {
            None => Text::new().add(Role::Dim, "not known"),
            Some(price) => plain(of(price).map_or_else(String::new, |price| price.to_string())),
        };
        table.row([
            Text::new().add(Role::Accent, &model.model),
            plain(model.window.map(grouped).unwrap_or_default()),
            price(|price| Some(price.input.into())),
            price(|price| price.cache_read.map(Into::into)),
            price(|price| Some(price.output.into())),
        ]);
    }
    table.lines()
}
