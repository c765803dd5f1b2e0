//! The template engine and its filters.

use minijinja::syntax::SyntaxConfig;
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, escape_formatter,
};

use crate::text::escape;

/// The engine, without templates.
pub(super) fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    // Every template is HTML or XML, whatever it is called, but for these two.
    environment.set_auto_escape_callback(|name| {
        if name.ends_with(".txt") || name.ends_with(".md") {
            AutoEscape::None
        } else {
            AutoEscape::Html
        }
    });
    // One way to escape, for quotations and everything else, which an audit can undo exactly.
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if matches!(state.auto_escape(), AutoEscape::Html) && !value.is_safe() => {
            out.write_str(&escape(text)).map_err(Error::from)
        }
        _ => escape_formatter(out, state, value),
    });
    // A misspelt name is an error, not an empty place in a page.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.add_filter("fill", fill);
    environment.add_filter("number", number);
    environment.add_filter("plural", plural);
    environment.add_filter("date", date);
    environment.add_filter("language", language);
    environment.add_filter("decimal", decimal);
    environment.add_filter("markdown", crate::text::markdown);
    environment
        .add_filter("lines", |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>());
    Ok(environment)
}

/// Fills the places `{name}` of a message from a map.
fn fill(message: &str, values: &Value) -> Result<String, Error> {
    let mut filled = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let value = values.get_attr(name)?;
        if value.is_undefined() {
            let detail = format!("the message asks for {{{name}}}, which is not there");
            return Err(Error::new(ErrorKind::UndefinedError, detail));
        }
        filled.push_str(before);
        filled.push_str(&value.to_string());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// A number with its thousands parted as the language does.
fn number(value: u64, messages: &Value) -> Result<String, Error> {
    let group = messages.get_attr("number")?.get_attr("group")?;
    let digits = value.to_string();
    let mut parted = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push_str(group.as_str().unwrap_or_default());
        }
        parted.push(digit);
    }
    Ok(parted)
}

/// A number with at most two decimals, written as the language does.
fn decimal(value: f64, messages: &Value) -> Result<String, Error> {
    let point = messages.get_attr("number")?.get_attr("decimal")?;
    let shown = format!("{value:.2}");
    let shown = shown.trim_end_matches('0').trim_end_matches('.');
    Ok(shown.replace('.', point.as_str().unwrap_or(".")))
}

/// "1 quotation", "2 quotations": the form for a number, from a pair of messages.
fn plural(value: u64, forms: &Value, messages: &Value) -> Result<String, Error> {
    let zero_is_singular = messages.get_attr("number")?.get_attr("zero_is_singular")?.is_true();
    let one = value == 1 || value == 0 && zero_is_singular;
    let form = forms.get_attr(if one { "one" } else { "other" })?;
    let shown = number(value, messages)?;
    Ok(form.as_str().unwrap_or_default().replace("{n}", &shown))
}

/// An ISO date in words; anything else as it is.
fn date(value: &str, messages: &Value) -> Result<String, Error> {
    let mut parts = value.splitn(3, '-');
    let (Some(year), Some(month), Some(day)) = (parts.next(), parts.next(), parts.next()) else {
        return Ok(value.to_owned());
    };
    let (Ok(month), Ok(day)) = (month.parse::<usize>(), day.parse::<u8>()) else {
        return Ok(value.to_owned());
    };
    let month =
        messages.get_attr("date")?.get_attr("months")?.get_item_by_index(month.wrapping_sub(1));
    Ok(match month {
        Ok(month) if !month.is_undefined() => format!("{day} {month} {year}"),
        _ => value.to_owned(),
    })
}

/// The name of a language, or its tag.
fn language(tag: &str, messages: &Value) -> Result<String, Error> {
    let primary = tag.split('-').next().unwrap_or_default();
    let name = messages.get_attr("languages")?.get_attr(primary)?;
    Ok(name.as_str().unwrap_or(tag).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    #[test]
    fn filters_speak_the_language() {
        let [en, fr, el] = ["en", "fr", "el"]
            .map(|language| Theme::built_in().unwrap().messages(language).unwrap());
        assert_eq!(number(1_234_567, &en).unwrap(), "1,234,567");
        assert_eq!(number(12_345, &el).unwrap(), "12.345");
        assert_eq!(number(999, &fr).unwrap(), "999");
        assert_eq!(date("2026-11-03", &fr).unwrap(), "3 novembre 2026");
        assert_eq!(date("2026-11-03", &el).unwrap(), "3 Νοεμβρίου 2026");
        for odd in ["yesterday", "2026-13-01", "2026-00-01", ""] {
            assert_eq!(date(odd, &en).unwrap(), odd);
        }
        assert_eq!(language("fr-FR", &el).unwrap(), "γαλλικά");
        assert_eq!(language("tlh", &en).unwrap(), "tlh");
        let forms = en.get_attr("question").unwrap().get_attr("quotations").unwrap();
        assert_eq!(plural(1, &forms, &en).unwrap(), "1 quotation");
        assert_eq!(plural(0, &forms, &en).unwrap(), "0 quotations");
    }

    #[test]
    fn a_message_that_asks_for_too_much_is_an_error() {
        let values = Value::from_pairs([("a", "{b}")]);
        assert_eq!(fill("x {a} y", &values).unwrap(), "x {b} y");
        assert!(fill("{b}", &values).is_err());
    }
}
