/*
 * Statements without their words. See said.h.
 */
#include "model/said.h"

#include <inttypes.h>
#include <string.h>

#include "base/cstr.h"
#include "model/home.h"

static void value_deinit(struct said_value *value)
{
	switch (value->kind) {
	case SAID_TEXT:
	case SAID_SITE:
		mem_free(value->text);
		break;
	case SAID_HOME:
		home_deinit(value->home);
		mem_free(value->home);
		break;
	case SAID_PART:
		said_deinit(value->part);
		mem_free(value->part);
		break;
	default:
		break;
	}
	*value = (struct said_value){ 0 };
}

static struct said_value value_copy(const struct said_value *value)
{
	struct said_value copy = *value;

	switch (value->kind) {
	case SAID_TEXT:
	case SAID_SITE:
		copy.text = cstr_dup(value->text);
		break;
	case SAID_HOME:
		return said_home(value->home);
	case SAID_PART:
		return said_copied(value->part);
	default:
		break;
	}
	return copy;
}

void said_make(struct said *ret, const char *id, struct said_value *values)
{
	said_deinit(ret);
	ret->id = mem_strdup(id);
	for (size_t i = 1; values[i].kind != SAID_KINDS; i++)
		VEC_PUSH(&ret->values, values[i]);
}

struct said *said_new(struct said_list *list)
{
	VEC_PUSH(&list->list, (struct said){ 0 });
	return &list->list.items[list->list.count - 1];
}

void said_add(struct said *said, struct said_value value)
{
	VEC_PUSH(&said->values, value);
}

struct said_value said_none(void)
{
	return (struct said_value){ 0 };
}

struct said_value said_number(uint64_t value)
{
	return (struct said_value){ .kind = SAID_NUMBER, .number = value };
}

struct said_value said_count(uint64_t value)
{
	return value > 0 ? said_number(value) : said_none();
}

struct said_value said_flag(bool value)
{
	return said_count(value);
}

struct said_value said_signed(int64_t value)
{
	return (struct said_value){ .kind = SAID_SIGNED, .integer = value };
}

struct said_value said_real(double value)
{
	return (struct said_value){ .kind = SAID_REAL, .real = value };
}

struct said_value said_take(char *text)
{
	return text ? (struct said_value){ .kind = SAID_TEXT, .text = text } : said_none();
}

struct said_value said_text(const char *text)
{
	return said_take(cstr_dup(text));
}

struct said_value said_word(const char *id)
{
	struct said part = { 0 };

	if (!id)
		return said_none();
	SAY(&part, id);
	return said_part(&part);
}

struct said_value said_home(const struct home *home)
{
	struct said_value value = { .kind = SAID_HOME, .home = mem_alloc(sizeof(*home)) };

	home_copy(value.home, home);
	return value;
}

struct said_value said_part(struct said *part)
{
	struct said_value value = { .kind = SAID_PART };

	if (!said_anything(part))
		return said_none();
	value.part = mem_alloc(sizeof(*part));
	said_move(value.part, part);
	return value;
}

struct said_value said_copied(const struct said *part)
{
	struct said copy;

	said_copy(&copy, part);
	return said_part(&copy);
}

struct said_value said_change(uint64_t old, uint64_t new, unsigned int len)
{
	int digits = len <= 8 ? (int)len * 2 : 1;

	return len > 0 ? said_take(mem_printf("0x%0*" PRIx64 " -> 0x%0*" PRIx64, digits, old,
					      digits, new))
		       : said_none();
}

bool said_anything(const struct said *said)
{
	return said->id || said->text;
}

bool said_same(const struct said *a, const struct said *b)
{
	AUTO(strbuf_deinit) struct strbuf one = { 0 };
	AUTO(strbuf_deinit) struct strbuf other = { 0 };

	said_plainly(a, &one);
	said_plainly(b, &other);
	return strcmp(strbuf_str(&one), strbuf_str(&other)) == 0;
}

static void value_plainly(const struct said_value *value, struct strbuf *sb)
{
	switch (value->kind) {
	case SAID_NUMBER:
		strbuf_addf(sb, "%" PRIu64, value->number);
		break;
	case SAID_SIGNED:
		strbuf_addf(sb, "%" PRId64, value->integer);
		break;
	case SAID_REAL:
		strbuf_addf(sb, "%g", value->real);
		break;
	case SAID_TEXT:
	case SAID_SITE:
		strbuf_adds(sb, value->text ? value->text : "-");
		break;
	case SAID_HOME:
		strbuf_addf(sb, "%s %s%s+%" PRId64, home_kind_name(value->home->kind),
			    value->home->key ? value->home->key : "",
			    value->home->name ? value->home->name : "", value->home->offset);
		break;
	case SAID_PART:
		said_plainly(value->part, sb);
		break;
	default:
		strbuf_addc(sb, '-');
	}
}

void said_plainly(const struct said *said, struct strbuf *sb)
{
	if (said->text) {
		strbuf_adds(sb, said->text);
		return;
	}
	if (!said->id)
		return;
	strbuf_adds(sb, said->id);
	for (size_t i = 0; i < said->values.count; i++) {
		strbuf_adds(sb, i == 0 ? " (" : ", ");
		value_plainly(&said->values.items[i], sb);
	}
	strbuf_adds(sb, said->values.count > 0 ? ")" : "");
}

void said_as_text(struct said *ret, const char *text)
{
	said_deinit(ret);
	ret->text = cstr_dup(text);
}

void said_copy(struct said *to, const struct said *from)
{
	*to = (struct said){ .id = cstr_dup(from->id), .text = cstr_dup(from->text) };
	VEC_FOREACH (&from->values, value)
		VEC_PUSH(&to->values, value_copy(value));
}

void said_move(struct said *to, struct said *from)
{
	struct said moved = *from;

	*from = (struct said){ 0 };
	said_deinit(to);
	*to = moved;
}

void said_add_once(struct said_list *list, struct said *said)
{
	if (VEC_ANY(&list->list, other, said_same(other, said)))
		said_deinit(said);
	else
		said_move(said_new(list), said);
}

void said_deinit(struct said *said)
{
	mem_free(said->id);
	mem_free(said->text);
	VEC_FREE(&said->values, value, value_deinit(value));
	*said = (struct said){ 0 };
}

void said_list_copy(struct said_list *to, const struct said_list *from)
{
	VEC_FOREACH (&from->list, said)
		said_copy(said_new(to), said);
}

void said_list_deinit(struct said_list *list)
{
	VEC_FREE(&list->list, said, said_deinit(said));
}
